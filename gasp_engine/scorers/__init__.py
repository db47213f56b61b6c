"""What reads an answer under several conditions: see `base` for the contract."""
