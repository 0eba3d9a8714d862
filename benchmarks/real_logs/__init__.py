"""What `fit_real_logs.py` is made of: measures, and plain SciPy fits beside those of MIME."""
