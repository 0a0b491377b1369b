# Settings of MPI for many ranks on one machine, to be sourced: . scripts/mpi-env.sh
# Nothing of it is in the programs: on a cluster its own settings hold.
# Open MPI; other libraries pass over these variables.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # root, as in containers
export OMPI_MCA_rmaps_base_oversubscribe=1                       # more ranks than cores; they yield then
# Shared memory alone: three times faster to start, and copying through it beats attaching to the other process.
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none
