"""Features -> scores -> decisions."""

from .base import Detector
from .evidence import EvidenceDetector
from .profile import Profile, load_profile, packaged_profiles

__all__ = [
    "Detector",
    "EvidenceDetector",
    "Profile",
    "default_detector",
    "load_profile",
    "packaged_profiles",
]


def default_detector(profile: Profile | None) -> Detector:
    """The project's own training-free detector, with the statistics of the profile."""
    return EvidenceDetector(profile.statistics if profile else None)
