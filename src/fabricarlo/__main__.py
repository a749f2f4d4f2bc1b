"""python -m fabricarlo"""

from fabricarlo.cli import main

main()
