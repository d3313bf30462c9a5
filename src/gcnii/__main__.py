"""`python -m gcnii`: the command line without the installed script."""

from gcnii.cli import main

main()
