// Package sprio is Slurm's sprio: how the priorities of waiting jobs come about, a
// column for each factor that the site's rules weigh. The figures are those of
// cox priority: they add up to the number that orders the queue.
package sprio
