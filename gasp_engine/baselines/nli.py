"""Entailment baselines: a cross-encoder reads premise and sentence. Needs the `torch` extra.

whole context   1 − P(entailment | context, sentence); the context is cut at the encoder's
                window, and the result says so
best unit       1 − max_k P(entailment | unit k, sentence)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError, MissingExtraError, ModelLoadError

SMALL = "cross-encoder/nli-deberta-v3-small"
LARGE = "cross-encoder/nli-deberta-v3-large"
"""The paper's cross-encoders; any sequence classifier with an entailment label will do."""


@dataclass
class Entailment:
    """A cross-encoder over (premise, hypothesis)."""

    model: Any
    """A `transformers` sequence classifier."""
    tokenizer: Any
    """Its tokenizer."""
    labels: dict[str, int]
    """`entailment` and `contradiction` -> column of the logits."""
    batch: int = 16
    """Pairs read together."""

    @classmethod
    def from_pretrained(cls, name_or_path: str = SMALL, *, device: str = "cpu") -> Entailment:
        """Load a cross-encoder by hub name or from a local folder.

        Raises:
            MissingExtraError: torch or transformers is not installed.
            ModelLoadError: it cannot be loaded, or has no label named like entailment.
        """
        try:
            import transformers
        except ImportError as error:
            raise MissingExtraError(
                "entailment baselines need transformers: pip install 'gasp-integrations[torch]'"
            ) from error
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(name_or_path)
            model = transformers.AutoModelForSequenceClassification.from_pretrained(
                name_or_path, use_safetensors=True
            )
        except (OSError, ValueError) as error:
            raise ModelLoadError(f"{name_or_path} cannot be loaded: {error}") from error
        names = {int(k): str(v).casefold() for k, v in model.config.id2label.items()}
        labels = {
            wanted: k
            for wanted in ("entailment", "contradiction")
            for k, name in names.items()
            if name.startswith(wanted[:6])
        }
        if "entailment" not in labels:
            raise ModelLoadError(
                f"{name_or_path} has the labels {', '.join(names.values())}; expected one named "
                f"entailment"
            )
        return cls(model.to(device).eval(), tokenizer, labels)

    def probabilities(self, pairs: Sequence[tuple[str, str]], label: str) -> np.ndarray:
        """[N] probability of a label; a premise that is too long is cut from its end.

        Args:
            pairs: (premise, hypothesis).
            label: `entailment` or `contradiction`.

        Raises:
            InputError: the model has no such label.
        """
        import torch

        if label not in self.labels:
            raise InputError(f"the cross-encoder has no label {label!r}")
        values: list[float] = []
        limit = min(int(self.tokenizer.model_max_length), 512)
        for start in range(0, len(pairs), self.batch):
            part = pairs[start : start + self.batch]
            inputs = self.tokenizer(
                [premise for premise, _ in part],
                [hypothesis for _, hypothesis in part],
                truncation="only_first",
                max_length=limit,
                padding=True,
                return_tensors="pt",
            ).to(self.model.device)
            with torch.inference_mode():
                logits = self.model(**inputs).logits.float()
            values += torch.softmax(logits, dim=-1)[:, self.labels[label]].tolist()
        return np.array(values, dtype=np.float64)


def whole_context(encoder: Entailment, context: str, sentences: Sequence[str]) -> np.ndarray:
    """[S] 1 − P(entailment) with the whole context as premise."""
    return 1.0 - encoder.probabilities([(context, s) for s in sentences], "entailment")


def best_unit(encoder: Entailment, units: Sequence[str], sentences: Sequence[str]) -> np.ndarray:
    """[S] 1 − the highest P(entailment) over the units; 1 where there is no unit."""
    if not units:
        return np.ones(len(sentences))
    pairs = [(unit, sentence) for sentence in sentences for unit in units]
    found = encoder.probabilities(pairs, "entailment").reshape(len(sentences), len(units))
    return 1.0 - found.max(axis=1)
