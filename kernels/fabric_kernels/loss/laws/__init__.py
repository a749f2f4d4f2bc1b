"""What stalls cost an exchange: how many there are, and how many of them anyone waits for."""
