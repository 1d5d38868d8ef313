"""Tenants: their folders, settings files and secrets."""
