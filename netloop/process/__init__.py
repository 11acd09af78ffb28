"""The process, its files and its GPU: files read and written whole, forks, pauses of the garbage collector."""
