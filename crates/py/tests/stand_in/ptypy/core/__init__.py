"""Containers and scans."""
