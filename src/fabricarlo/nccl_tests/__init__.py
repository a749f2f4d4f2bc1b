"""Logs of nccl-tests and rccl-tests: what they say, and whether it can be believed."""

from fabricarlo.nccl_tests.checks import bus_factor
from fabricarlo.nccl_tests.log import read_log, read_text
from fabricarlo.nccl_tests.run import Measured, Row, Run

__all__ = ["Measured", "Row", "Run", "bus_factor", "read_log", "read_text"]
