"""mindcraft"""
