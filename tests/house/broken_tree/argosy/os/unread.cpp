// includes no header, though it has one of its name
