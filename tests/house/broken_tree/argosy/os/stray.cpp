// is of a list and does not include it
