"""Chatting without a full-screen app: plain lines that a screen reader can follow."""
