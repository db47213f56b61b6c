"""Measuring detectors: ranking quality, intervals, folds that leak nothing, calibration error.

auc       area under the ROC curve, bootstrap by group, paired comparison
folds     stratified folds, whole groups on one side
protocol  out-of-fold scores; raises when what was fitted has seen what it is tested on
quality   precision, recall, flag rate, expected calibration error
"""

from .auc import Bootstrap, Comparison, Estimate, auc
from .folds import Fold, make_folds
from .protocol import Fitted, Table, out_of_fold
from .quality import Quality, expected_calibration_error, quality

__all__ = [
    "Bootstrap",
    "Comparison",
    "Estimate",
    "Fitted",
    "Fold",
    "Quality",
    "Table",
    "auc",
    "expected_calibration_error",
    "make_folds",
    "out_of_fold",
    "quality",
]
