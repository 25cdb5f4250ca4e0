"""crafter"""
