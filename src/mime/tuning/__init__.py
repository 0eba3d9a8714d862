"""Gains of controllers for a stated cost, over a batch of plants, with limits and margins."""
