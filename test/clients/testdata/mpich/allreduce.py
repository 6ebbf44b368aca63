import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
near = world.Split_type(MPI.COMM_TYPE_SHARED)
sys.stdout.write(f"rank {world.rank} of {world.size} sum {world.allreduce(world.rank)} near {near.size}\n")
