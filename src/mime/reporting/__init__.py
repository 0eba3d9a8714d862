"""What a person sees of a run: tables, pictures, one page."""
