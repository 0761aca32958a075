"""Simulated. Why a node on which nothing happens costs nothing."""
