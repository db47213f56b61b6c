"""Runnable examples: RAG chains in LangChain and LlamaIndex whose answers are checked."""
