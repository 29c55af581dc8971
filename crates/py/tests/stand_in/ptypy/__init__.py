"""A stand-in for PtyPy, for tests where it is not installed: as much of its classes as engines of its kind meet.

It is written from the interface alone, has no engine of its own, and proves nothing about PtyPy: `test_ptypy.py` compares with that
where it can be imported.
"""
