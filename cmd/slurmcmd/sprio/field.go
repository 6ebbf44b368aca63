package sprio

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api/fastclient"
)

// field is a column of sprio.
type field struct {
	letter  byte
	head    string
	weight  func(weights fastclient.Value) string // what stands there for -w
	text    func(job fastclient.Value) string
	compare func(a, b fastclient.Value) int
}

var fields = fieldTable()

func fieldTable() []field {
	out := []field{
		{'c', "CLUSTER", emptyText, emptyText, compareEqual},
		{'i', "JOBID", func(fastclient.Value) string { return "Weights" }, jobID, byNumber(func(j fastclient.Value) float64 { return j.Get("id").Float() })},
		{'N', "NICE", emptyText, func(j fastclient.Value) string { return formatWhole(priorityFactor(j, "nice").Get("factor").Float()) }, byPart("nice", "factor")},
		{'o', "ACCOUNT", emptyText, textField("account"), byText("account")},
		{'r', "PARTITION", emptyText, textField("partition"), byText("partition")},
		{'S', "SITE", func(fastclient.Value) string { return "1" }, func(j fastclient.Value) string { return formatWhole(priorityFactor(j, "site").Get("points").Float()) }, byPart("site", "points")},
		{'t', "TRES", emptyText, tresOf("factor", true), compareEqual},
		{'T', "TRES", tresWeights, tresOf("points", false), compareEqual},
		{'u', "USER", emptyText, textField("user"), byText("user")},
		{'y', "PRIORITY", emptyText, func(j fastclient.Value) string { return strconv.FormatFloat(ofHighest(j), 'f', 14, 64) }, byNumber(jobPriority)},
		{'Y', "PRIORITY", emptyText, func(j fastclient.Value) string { return formatWhole(jobPriority(j)) }, byNumber(jobPriority)},
	}
	heads := map[string]string{"age": "AGE", "association": "ASSOC", "fair_share": "FAIRSHARE", "job_size": "JOBSIZE", "partition": "PARTITION", "qos": "QOS"}
	for _, f := range factors {
		weight := func(w fastclient.Value) string { return formatWhole(w.Get(f.name).Float()) }
		out = append(out,
			field{f.norm, heads[f.name], weight, func(j fastclient.Value) string {
				return formatFraction(priorityFactor(j, f.name).Get("factor").Float())
			}, byPart(f.name, "factor")},
			field{f.weighted, heads[f.name], weight, func(j fastclient.Value) string { return formatWhole(priorityFactor(j, f.name).Get("points").Float()) }, byPart(f.name, "points")})
	}
	return out
}

// findLetter returns the index of a field by its letter.
func findLetter(letter byte) (int, bool) {
	for i := range fields {
		if fields[i].letter == letter {
			return i, true
		}
	}
	return 0, false
}

func jobID(j fastclient.Value) string {
	id, _, _ := strings.Cut(j.Get("job").Text(), "_")
	return id
}

// ofHighest is a priority as a part of the highest there is; one that was set stands as
// it is, as in Slurm.
func ofHighest(j fastclient.Value) float64 {
	parts := j.Get("parts").Items()
	if len(parts) == 0 {
		return jobPriority(j)
	}
	sum := 0.0
	for _, p := range parts {
		sum += p.Get("points").Float()
	}
	return sum / (1<<32 - 1)
}

func byNumber(of func(fastclient.Value) float64) func(a, b fastclient.Value) int {
	return func(a, b fastclient.Value) int { return cmp.Compare(of(a), of(b)) }
}

func emptyText(fastclient.Value) string { return "" }

func compareEqual(_, _ fastclient.Value) int { return 0 }

func textField(name string) func(fastclient.Value) string {
	return func(j fastclient.Value) string { return j.Get(name).Text() }
}

func byText(name string) func(a, b fastclient.Value) int {
	return func(a, b fastclient.Value) int { return strings.Compare(a.Get(name).Text(), b.Get(name).Text()) }
}

func byPart(name, of string) func(a, b fastclient.Value) int {
	return func(a, b fastclient.Value) int {
		return cmp.Compare(priorityFactor(a, name).Get(of).Float(), priorityFactor(b, name).Get(of).Float())
	}
}

// jobPriority is at least 1, as Slurm's is.
func jobPriority(j fastclient.Value) float64 { return max(j.Get("priority").Float(), 1) }

// priorityFactor is one factor of a job's priority; of one that was set there are none.
func priorityFactor(j fastclient.Value, name string) fastclient.Value {
	for _, p := range j.Get("parts").Items() {
		if p.Get("name").Text() == name {
			return p
		}
	}
	return fastclient.Value{}
}

func formatWhole(x float64) string { return strconv.FormatFloat(x, 'f', 0, 64) }

func formatFraction(x float64) string { return strconv.FormatFloat(x, 'f', 7, 64) }

// tresName is Slurm's word for a thing that is weighed.
func tresName(part string) (string, bool) {
	name, ok := strings.CutPrefix(part, "tres/")
	switch {
	case name == "memory":
		name = "mem"
	case name == "disk":
		name = "fs/disk"
	case name == "gpu" || strings.HasPrefix(name, "gpu:"):
		name = "gres/" + name
	}
	return name, ok
}

func tresWeights(w fastclient.Value) string {
	var out []string
	for _, n := range w.Names() {
		if name, ok := tresName(n); ok {
			out = append(out, name+"="+formatWhole(w.Get(n).Float()))
		}
	}
	return strings.Join(out, ",")
}

func tresOf(of string, norm bool) func(fastclient.Value) string {
	return func(j fastclient.Value) string {
		var out []string
		for _, p := range j.Get("parts").Items() {
			name, ok := tresName(p.Get("name").Text())
			x := p.Get(of).Float()
			switch {
			case !ok:
			case norm:
				out = append(out, name+"="+strconv.FormatFloat(x, 'f', 2, 64))
			default:
				out = append(out, name+"="+formatWhole(x))
			}
		}
		return strings.Join(out, ",")
	}
}
