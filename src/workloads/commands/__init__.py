"""The commands of ``python -m workloads``, one file each: options, and what to print."""
