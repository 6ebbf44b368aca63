package server

import (
	"strconv"

	"github.com/coxswain-sched/coxswain/model/job"
)

// demand is what a job asks for, or holds, in all, as Slurm writes it.
type demand job.Demand

// appendGRES is what one node gives, as Slurm writes it: "gres/gpu:h100:8".
func (d demand) appendGRES(b []byte) []byte {
	if d.GPUs == 0 {
		return b
	}
	b = append(b, "gres/gpu:"...)
	if d.GPUType != "" {
		b = append(append(b, d.GPUType...), ':')
	}
	n := max(d.Nodes, 1)
	return strconv.AppendInt(b, int64((d.GPUs+n-1)/n), 10)
}

// appendTRES is the whole as Slurm writes it: "cpu=8,mem=64G,node=2,billing=8,gres/gpu=16".
func (d demand) appendTRES(b []byte) []byte {
	b = appendFloat(append(b, "cpu="...), d.CPUs)
	if d.Memory > 0 {
		b = appendMemory(append(b, ",mem="...), d.Memory)
	}
	b = strconv.AppendInt(append(b, ",node="...), int64(d.Nodes), 10)
	b = appendFloat(append(b, ",billing="...), d.CPUs)
	if d.GPUs > 0 {
		b = strconv.AppendInt(append(b, ",gres/gpu="...), int64(d.GPUs), 10)
	}
	return b
}

func appendFloat(b []byte, f float64) []byte { return strconv.AppendFloat(b, f, 'f', -1, 64) }

// appendMemory writes bytes in the largest of Slurm's units that keeps them whole:
// "64G", "1500M".
func appendMemory(b []byte, n int64) []byte {
	unit := 0
	for n >>= 10; n > 0 && n%1024 == 0 && unit < 3; n >>= 10 {
		unit++
	}
	return append(strconv.AppendInt(b, n, 10), "KMGT"[unit])
}
