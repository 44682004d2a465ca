"""Checkpoints: runs that go on in another process."""
