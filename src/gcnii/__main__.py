"""python -m gcnii: the command line where the script is not installed."""

from gcnii.cli import main

main()
