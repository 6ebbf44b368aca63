package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// TestWhatDoesNotFitIsFoundInTheText: a job that could not run even if nothing else did is
// told by the control plane; the answer says which part of which text asks for it, why, and
// what to do.
//
// Seen to fail without placed.
func TestWhatDoesNotFitIsFoundInTheText(t *testing.T) {
	nodes := reason.Reason{Code: reason.NodeCount, Resource: "nodes", Need: 4, Free: 1}
	gpus := reason.Reason{Code: reason.TooLarge, Resource: "gpu", Need: 8, Most: 4}
	memory := reason.Reason{Code: reason.TooLarge, Resource: "memory", Need: 1 << 40, Most: 1 << 30}
	cpus := reason.Reason{Code: reason.TooLarge, Resource: "cpu", Need: 64000, Most: 8000}
	const batch = "#!/bin/sh\n#SBATCH --time=10\n#SBATCH -N4 --gpus-per-node=8\n"
	const up = "ask for less (cox nodes shows what is there), or give the server more virtual nodes: room.nodes: 4 and room.gpus_per_node: 8 in cox.yaml, then restart it"
	const less = "ask for what is there: cox nodes, cox partitions"
	p := servertest.NewPlane()
	r := start(t, p, nil)
	for _, c := range []struct {
		name   string
		why    []reason.Reason
		form   string
		text   string
		args   []string
		env    []string
		want   string // file:line:column+length message
		remedy string // of the server's own user; others cannot give it more nodes
	}{
		{"a line", []reason.Reason{nodes}, api.FormSbatch, batch, nil, nil, "train.sbatch:3:11+1 --nodes=4: needs 4 nodes, only 1 qualify", up},
		{"another one", []reason.Reason{gpus}, api.FormSbatch, batch, nil, nil, "train.sbatch:3:29+1 --gpus-per-node=8: needs 8 GPUs on one node, the largest has 4 GPUs", up},
		{"what outranks it", []reason.Reason{nodes}, api.FormSbatch, batch, []string{"--nodes=4"}, nil, "command line:0:9+1 --nodes=4: needs 4 nodes, only 1 qualify", up},
		{"a variable", []reason.Reason{gpus}, api.FormSbatch, batch, nil, []string{"SBATCH_GPUS_PER_NODE=8"}, "environment:0:22+1 SBATCH_GPUS_PER_NODE=8: needs 8 GPUs on one node, the largest has 4 GPUs", up},
		{"nodes by tasks", []reason.Reason{nodes}, api.FormSbatch, "#!/bin/sh\n#SBATCH --ntasks=4 --ntasks-per-node=1\n", nil, nil, "train.sbatch:2:18+1 --ntasks=4: needs 4 nodes, only 1 qualify", "ask for less (cox nodes shows what is there), or give the server more virtual nodes: room.nodes: 4 in cox.yaml, then restart it"},
		{"nobody said it", []reason.Reason{memory}, api.FormSbatch, batch, nil, nil, "train.sbatch:0:0+0 needs 1 TiB memory on one node, the largest has 1 GiB memory", less},
		{"many tasks", []reason.Reason{cpus}, api.FormSbatch, "#!/bin/sh\n#SBATCH -c1 --ntasks-per-node=64\n", nil, nil, "train.sbatch:2:31+2 --ntasks-per-node=64: needs 64 CPUs on one node, the largest has 8 CPUs", less},
		{"wide tasks", []reason.Reason{cpus}, api.FormSbatch, "#!/bin/sh\n#SBATCH -c64 --ntasks-per-node=1\n", nil, nil, "train.sbatch:2:11+2 --cpus-per-task=64: needs 64 CPUs on one node, the largest has 8 CPUs", less},
		{"a command", []reason.Reason{nodes}, api.FormCommand, "", []string{"--nodes=4", "--gpus-per-node=8"}, nil, "command line:0:9+1 --nodes=4: needs 4 nodes, only 1 qualify", up},
		{"the native form", []reason.Reason{nodes}, api.FormNative, "name: x\nnodes: 4\ngpus_per_node: 8\ncommand: hostname\n", nil, nil, "train.sbatch:2:8+1 nodes: needs 4 nodes, only 1 qualify", up},
		{"in a group", []reason.Reason{nodes}, api.FormNative, "name: x\ncommand: hostname\ngroups:\n- nodes: 4\n  gpus_per_node: 8\n", nil, nil, "train.sbatch:4:10+1 groups[0].nodes: needs 4 nodes, only 1 qualify", up},
		{"in two groups", []reason.Reason{nodes}, api.FormNative, "name: x\ncommand: hostname\ngroups:\n- nodes: 2\n  gpus_per_node: 8\n- nodes: 2\n  gpus_per_node: 8\n", nil, nil, "train.sbatch:0:0+0 needs 4 nodes, only 1 qualify", up},
		{"one of two components", []reason.Reason{nodes}, api.FormSbatch, "#!/bin/sh\n#SBATCH -N4 --gpus-per-node=8\n#SBATCH hetjob\n#SBATCH --gpus-per-node=1\n", nil, nil, "train.sbatch:2:11+1 --nodes=4: needs 4 nodes, only 1 qualify", strings.Replace(up, "nodes: 4", "nodes: 5", 1)},
		{"two components", []reason.Reason{nodes}, api.FormSbatch, "#!/bin/sh\n#SBATCH -N2 --gpus-per-node=8\n#SBATCH hetjob\n#SBATCH -N2 --gpus-per-node=8\n", nil, nil, "train.sbatch:0:0+0 needs 4 nodes, only 1 qualify", up},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.Fail = &control.RefusedError{Reasons: c.why}
			s := servertest.Request()
			s.Form, s.Text, s.Args, s.Environ = c.form, c.text, c.args, c.env
			if c.form == api.FormCommand {
				s.Command = []string{"hostname"}
				s.File = ""
			}
			b, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			resp, body := r.Ask(t, "POST", "/v1/jobs", r.Token(t, "anna", nil), string(b))
			var e api.Error
			if err := json.Unmarshal([]byte(body), &e); err != nil || resp.StatusCode != 400 || len(e.Errors) != 1 || len(e.Reasons) != 1 || e.Reasons[0].Code != c.why[0].Code {
				t.Fatalf("%d %s, %v", resp.StatusCode, body, err)
			}
			x := e.Errors[0]
			if got := fmt.Sprintf("%s:%d:%d+%d %s", x.File, x.Line, x.Col, x.Len, x.Message); got != c.want || x.Remedy != less {
				t.Errorf("got  %s\n     %s\nwant %s\n     %s", got, x.Remedy, c.want, less)
			}
			_, err = r.Admin(t).Submit(t.Context(), s)
			var own *api.Error
			if !errors.As(err, &own) || len(own.Errors) != 1 || own.Errors[0].Remedy != c.remedy {
				t.Errorf("the server's own user: %v %+v, want %s", err, own, c.remedy)
			}
		})
	}
}

// TestWhatAnEngineRefusesIsFoundInTheText: a job that cannot be handed to the engine of its
// pool is refused with the place that asks for it, and with the kind of the engine's refusal.
func TestWhatAnEngineRefusesIsFoundInTheText(t *testing.T) {
	p := servertest.NewPlane()
	r := start(t, p, nil)
	p.Fail = fault.New(fault.Unsupported, "pool far: %w", engine.About(fault.New(fault.Unsupported, "within cannot be said to Slurm"), "within")).Advise("write switches")
	for text, want := range map[string]string{
		"command: hostname\nnodes: 2\nwithin: leaf\n":                                    "train.yaml:3:9 within: pool far: within cannot be said to Slurm (write switches)",
		"command: hostname\ngroups:\n- name: a\n- name: b\n  within: leaf\n  nodes: 2\n": "train.yaml:5:11 groups[1].within: pool far: within cannot be said to Slurm (write switches)",
		"command: hostname\nnodes: 2\n":                                                  "train.yaml:0:0 pool far: within cannot be said to Slurm (write switches)",
	} {
		s := servertest.Request()
		s.Form, s.Text, s.File, s.Args = api.FormNative, text, "train.yaml", nil
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		resp, body := r.Ask(t, "POST", "/v1/jobs", r.Token(t, "anna", nil), string(b))
		var e api.Error
		if err := json.Unmarshal([]byte(body), &e); err != nil || resp.StatusCode != fault.Unsupported.HTTPStatus() || len(e.Errors) != 1 {
			t.Fatalf("%d %s, %v", resp.StatusCode, body, err)
		}
		x := e.Errors[0]
		if got := fmt.Sprintf("%s:%d:%d %s (%s)", x.File, x.Line, x.Col, x.Message, x.Remedy); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
