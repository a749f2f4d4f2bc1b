"""What people write: YAML with positions, names, numbers with units, laws."""
