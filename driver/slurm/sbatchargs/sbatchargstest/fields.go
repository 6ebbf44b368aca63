// Package sbatchargstest has the fields of a job with what becomes of each on Slurm, for the
// tests of sbatchargs and of the engine, which must refuse the same fields before a launch.
package sbatchargstest

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Job is the least that is a job; a new one each time.
func Job() *job.Spec {
	return &job.Spec{
		Name: "j", WorkDir: "/w", Program: job.Program{Kind: job.Direct, Args: []string{"prog", "a b"}}, Source: job.Source{Form: "native"},
		Groups: []job.TaskGroup{{Nodes: job.Range{Min: 2, Max: 2}, Tasks: job.Count{Want: 4}, TasksPerNode: 2, PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.OneCPU}}}},
	}
}

// Field says what becomes of a field of a job on Slurm, where Slurm places the job.
type Field struct {
	Set   func(*job.Spec) // sets it in a Job; nil: a Job has it
	Words []string        // what Slurm is told
	Not   string          // what Slurm must not be told
	Error string          // what the refusal names
	None  string          // why nothing is said
}

func group(f func(*job.TaskGroup)) func(*job.Spec) {
	return func(s *job.Spec) { f(&s.Groups[0]) }
}

// Fields are the fields of job.Spec, job.TaskGroup and job.Wishes, all of them, by name.
var Fields = map[string]Field{
	"Name":            {Set: func(s *job.Spec) { s.Name = "my job" }, Words: []string{"--job-name=my job", `#SBATCH --job-name="my job"`}},
	"Owner":           {None: "the submission is made as its owner, see Identity"},
	"Account":         {Set: func(s *job.Spec) { s.Account = "bio" }, Words: []string{"--account=bio", "#SBATCH --account=bio"}},
	"QOS":             {Set: func(s *job.Spec) { s.QOS = "high" }, Words: []string{"--qos=high"}},
	"Comment":         {None: "it stands behind the tag in --comment"},
	"Pool":            {None: "this pool is it"},
	"Chosen":          {None: "why it is this pool"},
	"Partitions":      {Set: func(s *job.Spec) { s.Partitions = []string{"a", "b"} }, Words: []string{"--partition=a,b"}},
	"Begin":           {Set: func(s *job.Spec) { s.Begin = time.Now().Add(time.Hour) }, Not: "begin"},
	"Held":            {Set: func(s *job.Spec) { s.Held = true }, Not: "--hold"},
	"Nice":            {Set: func(s *job.Spec) { s.Nice = 5 }, Words: []string{"--nice=5"}},
	"Priority":        {Set: func(s *job.Spec) { s.Priority = 9 }, Not: "--priority"},
	"TimeLimit":       {Set: func(s *job.Spec) { s.TimeLimit = 90 * time.Second }, Words: []string{"--time=2"}},
	"TimeMin":         {Set: func(s *job.Spec) { s.TimeLimit, s.TimeMin = time.Hour, 10*time.Minute }, Words: []string{"--time-min=00:10:00"}},
	"Deadline":        {Set: func(s *job.Spec) { s.Deadline = time.Now().Add(time.Hour) }, Not: "deadline"},
	"Requeue":         {Set: func(s *job.Spec) { s.Requeue = true }, Words: []string{"--requeue"}, Not: "--no-requeue"},
	"Secrets":         {None: "jobs of Slurm pools have none: control refuses them"},
	"Serve":           {None: "the script chooses its ports and says which they are, and the server probes"},
	"Part":            {None: "the controller of the service is Coxswain's"},
	"Retries":         {None: "a retry is a new attempt, which is handed over when the old one is proved ended"},
	"Rerun":           {None: "the nodes of a new attempt are Coxswain's choice; pools whose own scheduler chooses them are refused"},
	"Avoid":           {None: "no job is submitted with it: it is what the core is told"},
	"RequeueExit":     {None: "a requeue is a new attempt, as a retry is"},
	"RequeueExitHold": {None: "a requeue is a new attempt, as a retry is"},
	"Depends":         {None: "it is handed over when they are met"},
	"Array":           {Set: func(s *job.Spec) { s.Array = &job.ArraySpec{Indices: []uint32{1, 2}} }, Not: "--array"},
	"Groups":          {None: "see TaskGroup"},
	"Within":          {Set: func(s *job.Spec) { s.Within = job.InLeaf }, Error: "together"},
	"Wish":            {Set: func(s *job.Spec) { s.Wish = job.Wish{N: 1} }, Error: "together"},
	"Levels":          {Set: func(s *job.Spec) { s.Levels = []string{"rack"} }, Error: "level"},
	"Program":         {Words: []string{"\nexec srun prog 'a b'\n"}},
	"Output":          {Set: func(s *job.Spec) { s.Output = job.Output{Stdout: "o-%j", Stderr: "e", Stdin: "i", Append: true} }, Words: []string{"--output=/w/o-%j", "--error=/w/e", "--input=i", "--open-mode=append", "#SBATCH --output=/w/o-%j"}},
	"Env":             {Set: func(s *job.Spec) { s.Env = job.Environment{Export: "A,B=2", Set: []string{"C=3"}} }, Words: []string{"A=1", "B=2", "C=3", "SLURM_EXPORT_ENV=A,B=2", "SLURM_GET_USER_ENV=1", "COX_JOB_ID=7"}, Not: "HOME="},
	"WorkDir":         {None: "Submission.Dir"},
	"Signal":          {Set: func(s *job.Spec) { s.Signal = &job.SignalSpec{Signal: 10, Before: time.Minute, BatchOnly: true} }, Words: []string{"--signal=B:10@60"}},
	"Licenses":        {Set: func(s *job.Spec) { s.Licenses = "matlab:2" }, Words: []string{"--licenses=matlab:2"}},
	"LicensesThere":   {None: "Licenses has them"},
	"Mail":            {Set: func(s *job.Spec) { s.Mail = &job.Mail{Types: []string{"END"}, To: "a@b"} }, Words: []string{"--mail-type=END", "--mail-user=a@b"}},
	"Notify":          {Set: func(s *job.Spec) { s.Notify = &job.Notify{Webhook: "https://example.org/secret"} }, Not: "example.org"}, // the server tells the URL
	"Image":           {Set: func(s *job.Spec) { s.Image = "repo/img:1" }, Words: []string{"exec srun --container-image=repo/img:1 --container-mounts=/w:/w --container-workdir=/w prog"}},
	"Container": {Set: func(s *job.Spec) {
		s.Image, s.Container = "repo/img:1", &job.Container{Mounts: []job.Mount{{Source: "/d", Target: "/e", Flags: []string{"ro"}}}, WorkDir: "/e"}
	}, Words: []string{"exec srun --container-image=repo/img:1 --container-mounts=/d:/e:ro --container-workdir=/e prog"}},
	"Pod":           {Set: func(s *job.Spec) { s.Pod = &job.Pod{HostNetwork: true} }, Error: "pods"},
	"Upload":        {Set: func(s *job.Spec) { s.Upload = &job.Upload{Dir: "/w"} }, Error: "comes with the job"},
	"Reservation":   {Set: func(s *job.Spec) { s.Reservation = "r" }, Words: []string{"--reservation=r"}},
	"KillOnBadExit": {Set: func(s *job.Spec) { s.KillOnBadExit = true }, Words: []string{"exec srun --kill-on-bad-exit=1 prog"}},
	"Source":        {Set: func(s *job.Spec) { s.Source.File, s.Source.Host, s.Source.Submit = "t.yaml", "login", "/s" }, Words: []string{"# It came as form native, file t.yaml, submitted from login:/s"}},
	"Provenance":    {None: "it is kept here"},

	"TaskGroup.Name":         {Set: group(func(g *job.TaskGroup) { g.Name = "workers\n#SBATCH -N9" }), Words: []string{"# Group 0 is workers #SBATCH -N9."}},
	"TaskGroup.Nodes":        {Set: group(func(g *job.TaskGroup) { g.Nodes = job.Range{Min: 2, Max: 4} }), Words: []string{"--nodes=2-4"}},
	"TaskGroup.Tasks":        {Set: group(func(g *job.TaskGroup) { g.Tasks = job.Count{Want: 4, Min: 2} }), Words: []string{"--ntasks=4"}},
	"TaskGroup.TasksPerNode": {Words: []string{"--ntasks-per-node=2"}},
	"TaskGroup.CPUsPerTask":  {Set: group(func(g *job.TaskGroup) { g.CPUsPerTask, g.PerTask.CPU = 3, resource.CPUs(3) }), Words: []string{"--cpus-per-task=3", "srun --cpus-per-task=3 prog"}},
	"TaskGroup.Overcommit":   {Set: group(func(g *job.TaskGroup) { g.Overcommit, g.PerTask.CPU, g.PerNode.CPU = true, 0, resource.OneCPU }), Words: []string{"#SBATCH --overcommit"}},
	"TaskGroup.PerNode": {Set: group(func(g *job.TaskGroup) {
		g.PerNode = resource.Requirements{Vector: resource.Vector{Memory: resource.GiB, Disk: resource.GiB}, Devices: []resource.DeviceRequest{{Type: "h100", Count: 2}}}
	}), Words: []string{"--gres=gpu:h100:2", "--mem=1G", "--tmp=1G"}},
	"TaskGroup.PerTask": {Set: group(func(g *job.TaskGroup) {
		g.PerTask.Memory, g.PerTask.Devices = 512*resource.MiB, []resource.DeviceRequest{{Count: 1}}
	}), Words: []string{"--mem-per-cpu=512M", "--gpus-per-task=1"}},
	"TaskGroup.PerDevice": {Set: group(func(g *job.TaskGroup) {
		g.PerTask.CPU, g.PerDevice = 0, resource.Vector{CPU: resource.CPUs(4), Memory: resource.GiB}
		g.PerNode.Devices = []resource.DeviceRequest{{Count: 2}}
	}), Words: []string{"--cpus-per-gpu=4", "--mem-per-gpu=1G"}},
	"TaskGroup.Total":     {Set: group(func(g *job.TaskGroup) { g.Total.Devices = []resource.DeviceRequest{{Count: 8}} }), Words: []string{"--gpus=8"}},
	"TaskGroup.AllMemory": {Set: group(func(g *job.TaskGroup) { g.AllMemory = true }), Words: []string{"--mem=0"}},
	"TaskGroup.Exclusive": {Set: group(func(g *job.TaskGroup) { g.Exclusive = true }), Words: []string{"#SBATCH --exclusive"}},
	"TaskGroup.Constraint": {Set: group(func(g *job.TaskGroup) {
		g.Constraint = job.Constraint{Text: "a&b", Alternatives: [][]string{{"a", "b"}}}
	}), Words: []string{"--constraint=a&b"}},
	"TaskGroup.NodeList":     {Set: group(func(g *job.TaskGroup) { g.NodeList = []string{"n1", "n2"} }), Words: []string{"--nodelist=n[1-2]"}},
	"TaskGroup.Exclude":      {Set: group(func(g *job.TaskGroup) { g.Exclude = []string{"n3"} }), Words: []string{"--exclude=n3"}},
	"TaskGroup.Contiguous":   {Set: group(func(g *job.TaskGroup) { g.Contiguous = true }), Words: []string{"#SBATCH --contiguous"}},
	"TaskGroup.Elastic":      {Set: group(func(g *job.TaskGroup) { g.Elastic = true }), Error: "elastic"},
	"TaskGroup.Subgroup":     {Set: group(func(g *job.TaskGroup) { g.Subgroup = 2 }), Error: "subgroup"},
	"TaskGroup.Within":       {Set: group(func(g *job.TaskGroup) { g.Within = 1 }), Error: "within"},
	"TaskGroup.Segment":      {Set: group(func(g *job.TaskGroup) { g.Segment = 2 }), Words: []string{"--segment=2"}},
	"TaskGroup.Switches":     {Set: group(func(g *job.TaskGroup) { g.Switches = 1 }), Error: "switches_for"},
	"TaskGroup.Spread":       {Set: group(func(g *job.TaskGroup) { g.Spread = true }), Words: []string{"--spread-job"}},
	"TaskGroup.FewNodes":     {Set: group(func(g *job.TaskGroup) { g.FewNodes = true }), Words: []string{"--use-min-nodes"}},
	"TaskGroup.Wishes":       {Set: group(func(g *job.TaskGroup) { g.Wishes.Switches = job.Wish{N: 1, For: time.Hour} }), Words: []string{"--switches=1@1:00:00"}},
	"Wishes.Within":          {Set: group(func(g *job.TaskGroup) { g.Wishes.Within = job.Wish{N: 1} }), Error: "within_for"},
	"Wishes.Switches":        {None: "see TaskGroup.Wishes"},
	"Wishes.GPUs":            {Set: group(func(g *job.TaskGroup) { g.Wishes.GPUs = []string{"a", "b"} }), Error: "gpu_types"},
	"Wishes.GPUsFor":         {Set: group(func(g *job.TaskGroup) { g.Wishes.GPUsFor = 1 }), Error: "gpu_types"},
	"TaskGroup.Distribution": {Set: group(func(g *job.TaskGroup) { g.Distribution = "cyclic" }), Words: []string{"--distribution=cyclic"}},
}
