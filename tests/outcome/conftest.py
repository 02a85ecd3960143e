"""Settings of the property tests here: the first use of scipy takes longer than hypothesis' deadline."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
