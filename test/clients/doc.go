// Package clientstest runs programs that other projects wrote for Slurm, unchanged and from their
// registries, against a server of Coxswain with the names of Slurm's commands
// (cox install-names) first in PATH.
//
// A client has a small program of ours in testdata, which uses the client as its users do: it
// submits jobs, reads their results, states and failures through the client, and prints them. The
// test compares every line with the transcript beside it, then asks the server what became of the
// jobs. Versions are pinned in versions/.
//
// make clients installs the clients outside of the work tree (scripts/clients/install.sh) and runs
// all of these tests; make test runs those of submitit, snakemake, Nextflow and parsl. Without
// COX_CLIENTS, the folder of the installed clients, every test is skipped.
//
// The nodes are virtual nodes of this machine and their GPUs are declared, so nothing here says
// that a client works with real GPUs or over a network.
package clientstest
