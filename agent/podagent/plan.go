// Package podagent is what runs in the pods of an attempt as their first process
// (cmd/cox-pod): it holds the start barrier, leads srun's connections between pods, and
// says how the attempt ended. The driver (driver/kube) writes a Plan into the attempt's
// Secret and reads an Outcome from the pods' termination messages; between the two no
// server is needed. docs/explanation/design/0011 has the reasons.
//
// What a member runs is the local engine's supervisor (agent/supervise), as a
// child with a slot of its own below Dir.
//
// Where what is (a change has its room in one of these):
//
//	plan.go check.go certs.go outcome.go    what the driver writes and reads: the plan, the keys, the end
//	run.go place.go child.go install.go     a member's process, its files, the first process of its pod
//	launch.go log.go memory.go              what the supervisor is told to run, its output, its memory's end
//	member.go gang.go                       a member, and all of them as member 0 leads them
//	tunnel.go                               connections between members
//	message.go suspend.go                   what the driver asks of one that runs: signals, ends, suspending
//	exec.go usage.go                        a command beside the tasks; what the attempt has used so far
//	serving.go                              what the kubelet asks of one that serves
//	files.go checkpoint.go secrets.go       a directory that came with the job; where it saves; its secrets
package podagent

import (
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// Where things are in a member's file system.
const (
	Dir        = "/cox"          // an empty volume; the init container fills bin
	BinDir     = "/cox/bin"      // cox-pod, cox-slurm and its links (srun, scontrol …)
	PlanDir    = "/cox-attempt"  // the attempt's Secret, mounted read-only
	PlanFile   = "plan.json"     // in PlanDir: a Plan
	CAFile     = "ca.crt"        // in PlanDir: what every member's certificate is checked by
	WorkDir    = "/cox/work"     // where a job works whose own directory is not there
	SecretsDir = "/cox-secrets"  // the values of the job's secrets, mounted read-only, by job.Secret.FileName
	PrivateDir = "/cox-private"  // an empty volume in memory, for the pod's user's copy of them
	IndexEnv   = "COX_POD_INDEX" // the member's number, of the pod's environment
	HereEnv    = "COX_POD_IP"    // the one address where a member listens, on a network that is not its own; unset: all
)

// Port is where members listen for each other.
const Port = 7420

// Plan is what all members of an attempt are told. It is written once.
type Plan struct {
	Ref     engine.Ref    `json:"ref"`
	Job     *job.Job      `json:"job"`
	Claims  []fleet.Claim `json:"claims"` // with the members' names in the place of nodes'
	Members []Member      `json:"members"`
	Script  []byte        `json:"script,omitempty"`
	Env     []string      `json:"env,omitempty"`
	Grace   time.Duration `json:"grace"`
	Ready   time.Duration `json:"ready"`              // how long member 0 waits for the others
	WorkDir string        `json:"work_dir,omitempty"` // where the job works if its own directory is not in the pods; empty: it is refused then
	Strict  bool          `json:"strict,omitempty"`   // all the same its own directory, and those of its output files, have to be there

	// Checkpoint is, but for the user's directory that stands before its last part, the directory
	// for what the job saves, one for all its attempts, on a volume that all members have; empty: it
	// has none. Member 0 makes both. Saved is what was reported last.
	Checkpoint string       `json:"checkpoint,omitempty"`
	Saved      engine.Saved `json:"saved,omitzero"`

	// Upload is a directory that is sent to member 0 (Receive), and by it to the others. No
	// member is ready without; Dir is there before, and empty.
	Upload *job.Upload `json:"upload,omitempty"`
	// UploadRoom is how many bytes it may have when it is unpacked; 0: any number.
	UploadRoom int64 `json:"upload_room,omitempty"`
}

// Member is a pod of the attempt. Its certificate and key are in PlanDir as INDEX.crt and
// INDEX.key; the certificate's only name is Name.
type Member struct {
	Name string     `json:"name"` // host name, and what the job's programs know it by
	Host string     `json:"host"` // where it is reached, without port: a name or an address
	Port int        `json:"port"` // 0: Port
	Node fleet.Node `json:"node"` // what step.NewAlloc is told of it; its Name is the member's
}

// Outcome is how an attempt ended on one member: its termination message, 4 KiB at most.
// The attempt's own is member 0's.
type Outcome struct {
	Ref     engine.Ref          `json:"ref"`
	Index   int                 `json:"index"`
	Cause   engine.Cause        `json:"cause"`
	Exit    job.ExitCode        `json:"exit"`
	Started time.Time           `json:"started,omitzero"` // when the barrier was opened; zero: it never was
	Ended   time.Time           `json:"ended,omitzero"`
	Message string              `json:"message,omitempty"`
	Saved   *engine.Saved       `json:"saved,omitempty"` // what the job reported last by the file in Plan.Checkpoint
	Tasks   []engine.TaskReport `json:"tasks,omitempty"` // those that failed first, as many as there is room for
	Left    int                 `json:"left,omitempty"`  // tasks that there was no room for
	Used    *rusage.Record      `json:"used,omitempty"`  // by all members, of their supervisors; without nodes, and with few steps
}
