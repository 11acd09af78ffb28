"""The process and its files: files read and written whole, forks, pauses of the garbage collector."""
