"""What `public_robots.py` is made of: robot files of others, MIME and two peers that read them."""
