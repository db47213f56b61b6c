"""The paper's side analyses: does the cited chunk support, and does the trajectory move."""
