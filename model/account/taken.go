package account

import (
	"cmp"
	"slices"
)

// Taken is the mode in which a job of a QOS makes room for others in a partition: the QOS's own,
// else the partition's, else the one for all. Where partitions alone give the right, the
// partition's goes before the QOS's, as in Slurm; where jobs take turns they are suspended. It
// does not ask whether the policy lets anybody take its place.
func (p *Policy) Taken(qos, partition string) string {
	var ofQOS, ofPartition string
	if i := slices.IndexFunc(p.QOS, func(a QOS) bool { return a.Name == qos }); i >= 0 {
		ofQOS = p.QOS[i].PreemptMode
	}
	if i := slices.IndexFunc(p.Partitions, func(a Partition) bool { return a.Name == partition }); i >= 0 {
		if p.Partitions[i].TimeSlice > 0 {
			return PreemptSuspend
		}
		ofPartition = p.Partitions[i].PreemptMode
	}
	if slices.Contains(p.Preemption.By, "partition") && !slices.Contains(p.Preemption.By, "qos") {
		ofQOS, ofPartition = ofPartition, ofQOS
	}
	return cmp.Or(ofQOS, ofPartition, p.Preemption.Mode, PreemptRequeue)
}
