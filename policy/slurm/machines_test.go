package slurm

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/policy"
	"github.com/coxswain-sched/coxswain/sim/study"
)

func read(t *testing.T, dir string, names ...string) *Result {
	t.Helper()
	r, err := Read(files(t, dir, names...), Options{Include: include(dir)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestMachines: a cluster with what sites write, as its report and its description were looked
// through; the description is one that cox simulate takes.
func TestMachines(t *testing.T) {
	dir := filepath.Join("testdata", "gpu")
	r := read(t, dir, "topology.conf", "gres.conf", "cgroup.conf", "slurmdbd.conf", "job_submit.lua", "slurm.conf")
	var b strings.Builder
	r.Report.Write(&b, false)
	golden(t, filepath.Join(dir, "report.txt"), b.String())
	if strings.Contains(b.String(), "s3cret") {
		t.Error("a password is in the report")
	}
	text := r.Cluster.Write()
	golden(t, filepath.Join(dir, "cluster.yaml"), string(text))
	nodes, err := study.ReadCluster("cluster.yaml", text)
	if err != nil || len(nodes) != r.Cluster.Nodes() {
		t.Fatalf("%d nodes are described, %d read: %v", r.Cluster.Nodes(), len(nodes), err)
	}
	leaf := map[string]string{}
	for _, n := range nodes {
		leaf[n.Name] = strings.Join(n.Path, "/")
	}
	if leaf["gpu01"] != leaf["gpu02"] || leaf["gpu01"] == leaf["gpu03"] || leaf["gpu03"] != leaf["gpu04"] || leaf["gpu05"] == leaf["gpu04"] || leaf["gpu01"] != "spine/leaf1" || leaf["bad"] != "" {
		t.Errorf("the leaves are %v", leaf)
	}
	if want := "cox pool add alps-2 --engine slurm "; !strings.HasPrefix(r.Cluster.Pool(), want) {
		t.Errorf("as a pool: %s", r.Cluster.Pool())
	}
	if want := "8 nodes, 52 GPUs (a100, a30, h100, v100), 3 leaves, 4 partitions"; r.Cluster.String() != want {
		t.Errorf("%s, want %s", r.Cluster, want)
	}
}

// TestTopologyYAML: several topologies, of which the first one describes the machines.
func TestTopologyYAML(t *testing.T) {
	dir := filepath.Join("testdata", "gpu")
	fs := append(files(t, dir, "topology.yaml"), File{"slurm.conf", "NodeName=gpu[01-06] CPUs=8\n"})
	r, err := Read(fs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	r.Report.Write(&b, false)
	golden(t, filepath.Join(dir, "report-yaml.txt"), b.String())
	if p := strings.Join(r.Cluster.nodes["gpu02"].path, "/"); r.Cluster.String() != "6 nodes, 1 leaf" || p != "spine/leaf1" {
		t.Errorf("%s, gpu02 at %s", r.Cluster, p)
	}
	_, err = Read([]File{{"topology.yaml", "- topology: a\n  tree: {switches: [\n"}}, Options{})
	if fault.KindOf(err) != fault.Invalid || !strings.HasPrefix(err.Error(), "topology.yaml:") {
		t.Error(err)
	}
}

// TestTemplates: lines of templates are named, whatever becomes of them.
func TestTemplates(t *testing.T) {
	dir := filepath.Join("testdata", "gpu")
	r := read(t, dir, "slurm.conf.j2")
	var b strings.Builder
	r.Report.Write(&b, false)
	if r.Report.Count(policy.Refused) != 3 || !strings.Contains(b.String(), "slurm.conf.j2:1: ignored      SlurmctldHost={{ head }}") || len(r.Policy.Partitions) != 1 {
		t.Error(b.String())
	}
}

// TestDirectives: each is in one table, by the name that Slurm has for it; NodeName,
// PartitionName, NodeSet, DownNodes, FrontendName and Include begin lines of their own.
func TestDirectives(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range Directives() {
		key := strings.ToLower(d.Name)
		if seen[key] || d.Becomes == "" {
			t.Errorf("%s is there twice, or becomes nothing", d.Name)
		}
		seen[key] = true
		if _, err := Read([]File{{"slurm.conf", d.Name + "=1\n"}}, Options{}); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
	if len(seen) != 259 {
		t.Errorf("%d directives; of slurm.conf 20.11 to 26.05 there are 259", len(seen))
	}
	for key := range clusterKeys {
		if !seen[key] {
			t.Errorf("%s is a rule that no table has", key)
		}
	}
	for name := range ruleWords {
		if clusterKeys[strings.ToLower(name)] == nil {
			t.Errorf("%s is said to be a rule", name)
		}
	}
	for key := range oldNames {
		if confIndex[key].why == "" && key != "shared" && key != "procs" && key != "frontendname" {
			t.Errorf("the old name %s is no directive", key)
		}
	}
}

// TestNear: what is misspelt is found.
func TestNear(t *testing.T) {
	for text, want := range map[string]string{
		"SlurmctldPrameters=x":         "did you mean SlurmctldParameters?",
		"Frobnicate=3":                 "has no such setting",
		"PartitionName=p MaxTme=3":     "did you mean MaxTime?",
		"NodeName=n MemSpecLimt=3":     "did you mean MemSpecLimit?",
		"NodeSet=s Feture=x":           "did you mean Feature?",
		"DownNodes=n Stat=DOWN":        "did you mean State?",
		"FrontendName=f DenyUser=anna": "did you mean DenyUsers?",
	} {
		_, report, err := Import([]File{{"slurm.conf", text + "\n"}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		last := report.Findings[len(report.Findings)-1]
		if last.Verdict != policy.Refused || !strings.Contains(last.How, want) || last.Line != 1 || last.File != "slurm.conf" {
			t.Errorf("%s: %+v", text, last)
		}
	}
}

// TestKinds: files are known by their names, else by what is in them.
func TestKinds(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       kind
	}{
		{"/etc/slurm/slurm.conf", "", aConf},
		{"slurm.conf_prod", "", aConf},
		{"gres-wsl.conf", "", aGres},
		{"gres.conf.dgx", "", aGres},
		{"topology.conf.j2", "", aTopology},
		{"topology.yaml", "", aTopologyYAML},
		{"my-topology.yml", "", aTopologyYAML},
		{"slurmdbd.conf_test", "", another},
		{"htc-slurmdbd.conf.tpl", "", another},
		{"plugstack.conf", "", another},
		{"job_submit.lua.tpl", "", aScript},
		{"x", "Name|Priority\n", aTable},
		{"x", "Cluster - 'c'\n", aDump},
		{"x", "# a\nSwitchName=a\n", aTopology},
		{"x", "BlockName=b Nodes=n\n", aTopology},
		{"x", "Configuration data as of 2026-11-23T00:32:26\n", aShown},
		{"x", "NodeName=n Name=gpu\n", aGres},
		{"x", "AutoDetect=nvml\n", aGres},
		{"x", "NodeName=n CPUs=3\n", aConf},
		{"x", "Include y\n", aConf},
		{"x", "- topology: a\n", aTopologyYAML},
		{"x", "hello\n", nothing},
	} {
		if got := kindOf(File{tt.name, tt.text}); got != tt.want {
			t.Errorf("%s with %q is %d, want %d", tt.name, tt.text, got, tt.want)
		}
	}
}

// Any text is read without harm as whatever kind of file, and the machines can be described.
func FuzzMachines(f *testing.F) {
	dir := filepath.Join("testdata", "gpu")
	for i, name := range []string{"gres.conf", "topology.conf", "topology.yaml", "slurm.conf"} {
		b, err := filepath.Glob(filepath.Join(dir, name))
		if err != nil || len(b) != 1 {
			f.Fatal(b, err)
		}
		f.Add(i, string(mustRead(f, b[0])))
	}
	names := []string{"gres.conf", "topology.conf", "topology.yaml", "slurm.conf", "cgroup.conf"}
	f.Fuzz(func(t *testing.T, which int, text string) {
		if len(text) > 8<<10 || strings.Count(text, "[") > 20 {
			return
		}
		name := names[uint(which)%uint(len(names))]
		r, err := Read([]File{{"slurm.conf.base", "NodeName=gpu[01-06],old1 CPUs=8 Gres=gpu:4\n"}, {name, text}}, Options{})
		if err != nil {
			return
		}
		var b strings.Builder
		r.Report.Write(&b, false)
		_ = r.Cluster.String()
		out := r.Cluster.Write()
		if r.Cluster.Nodes() == 0 || r.Cluster.Nodes() > 5000 {
			return
		}
		if _, err := study.ReadCluster("x", out); err != nil {
			t.Fatalf("%q makes\n%s\nwhich cannot be read: %v", text, out, err)
		}
	})
}

// TestShown: what scontrol show config of 22.05 and 24.11 prints, shortened.
func TestShown(t *testing.T) {
	text := `Configuration data as of 2026-11-23T00:32:26
AccountingStorageHost   = 127.0.0.1
AcctGatherEnergyType    = (null)
BOOT_TIME               = 2026-11-23T00:32:20
ClusterName             = lab
KillWait                = 30 sec
JobDefaults             = DefMemPerGPU=100
PreemptMode             = REQUEUE
PreemptType             = preempt/qos
PriorityDecayHalfLife   = 7-00:00:00
PriorityFlags           =${" "}
PriorityWeightFairShare = 100
SchedulerTimeSlice      = 30 sec
SlurmctldHost[0]        = vm(127.0.0.1)
TaskPluginParam         = (null type)

Cgroup Support Configuration:
AllowedRAMSpace         = 100.0%

Slurmctld(primary) at vm is UP
`
	r, err := Read([]File{{"shown.txt", strings.ReplaceAll(text, `${" "}`, " ")}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Report.Count(policy.Refused) != 1 || r.Policy.Priority.FairShare != 100 || r.Policy.Preemption.Mode != "requeue" || r.Cluster.Name != "lab" || len(r.Report.Findings) != 12 {
		t.Errorf("%+v", r.Report.Findings)
	}
}

// TestDumps: what sacctmgr dump of a 24.11 wrote of accounts that were made with every option
// (22.05 wrote the same); a share of 2147483647 is the parent's.
//
// Seen to fail without that number.
func TestDumps(t *testing.T) {
	text := `Cluster - 'lab':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'lab':Description='a lab':Organization='org':DefaultQOS='normal':Fairshare=10:GrpTRESMins=cpu=1000:GrpTRESRunMins=cpu=500:GrpTRES=cpu=100,gres/gpu=8:GrpJobs=50:GrpJobsAccrue=4:GrpSubmitJobs=60:GrpWall=1000:MaxTRESMinsPerJob=cpu=200:MaxTRESPerJob=cpu=20:MaxTRESPerNode=cpu=8:MaxJobs=9:MaxJobsAccrue=3:MaxSubmitJobs=10:MaxWallDurationPerJob=2880:Priority=7:QOS='high,normal'
Parent - 'lab'
User - 'nobody':Partition='batch':DefaultAccount='team':DefaultWCKey='x':AdminLevel='Operator':Coordinator='lab':WCKeys='x':Fairshare=1
Account - 'team':Description='team':Organization='lab':Fairshare=2147483647
Parent - 'team'
User - 'nobody':DefaultAccount='team':DefaultWCKey='x':AdminLevel='Operator':Coordinator='lab':WCKeys='x':Fairshare=3:MaxJobs=2:MaxJob=3
`
	r, err := Read([]File{{"dump.cfg", text}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Policy.Accounts) != 3 || r.Policy.Accounts[2].Name != "team" || r.Policy.Accounts[2].Shares != account.ParentShares || len(r.Policy.Accounts[2].Users) != 1 {
		t.Errorf("%+v", r.Policy.Accounts)
	}
	last := r.Report.Findings[len(r.Report.Findings)-1]
	if last.Line != 9 || last.How != "an account or user has no such option; did you mean MaxJobs?" {
		t.Errorf("%+v", last)
	}
	if _, err := policy.Parse("queues.yaml", policy.Write(r.Policy)); err != nil {
		t.Error(err)
	}
	for _, name := range dumped {
		_, report, err := Import([]File{{"dump.cfg", "Cluster - 'c'\nParent - 'root'\nAccount - 'a':" + name + "='1'\nUser - 'u':" + name + "='1'\nQOS - 'q':" + name + "='1'\n"}}, Options{})
		if err != nil || len(report.Findings) < 8 {
			t.Errorf("%s: %v, %+v", name, err, report)
		}
	}
}

// TestBytes: what is no text is refused with its line, but in comments.
func TestBytes(t *testing.T) {
	r, err := Read([]File{{"slurm.conf", "# caf\xe9\nPriorityWeightAge=3\nPartitionName=a\x00\xff\n"}, {"qos.txt", "Name|Priority\nb\x00\xff|3\n"}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var at []string
	for _, f := range r.Report.Findings {
		if f.Verdict == policy.Refused && strings.Contains(f.How, "bytes that are no text") {
			at = append(at, fmt.Sprintf("%s:%d", f.File, f.Line))
		}
	}
	if strings.Join(at, " ") != "slurm.conf:3 qos.txt:2" {
		t.Errorf("%v of %+v", at, r.Report.Findings)
	}
}

// TestDocument: docs/reference/import-slurm-directives.md has every directive and setting.
func TestDocument(t *testing.T) {
	name := filepath.Join("..", "..", "docs", "reference", "import-slurm-directives.md")
	text := string(mustRead(t, name))
	put := func(mark, table string) {
		t.Helper()
		begin, end := "<!-- "+mark+": generated -->\n", "<!-- end -->"
		i := strings.Index(text, begin)
		if i < 0 {
			t.Fatalf("%s has no %s", name, begin)
		}
		i += len(begin)
		text = text[:i] + table + text[i+strings.Index(text[i:], end):]
	}
	var used strings.Builder
	used.WriteString("| directive | becomes |\n|---|---|\n")
	groups := map[string][]string{} // directives by verdict and reason
	for _, d := range Directives() {
		verdict, why, _ := strings.Cut(d.Becomes, ": ")
		if verdict != "refused" && verdict != "ignored" {
			fmt.Fprintf(&used, "| %s | %s |\n", d.Name, d.Becomes)
			continue
		}
		shown := d.Name
		switch d.Now {
		case "":
		case "nothing":
			shown += " (gone in newer Slurm)"
		default:
			shown += " (now " + d.Now + ")"
		}
		row := " | " + why + " |\n"
		groups[verdict+row] = append(groups[verdict+row], shown)
	}
	put("used", used.String())
	for _, verdict := range []string{"refused", "ignored"} {
		var rows []string
		for row, names := range groups {
			if of, rest, _ := strings.Cut(row, " "); of == verdict {
				rows = append(rows, "| "+strings.Join(names, ", ")+" "+rest)
			}
		}
		slices.SortFunc(rows, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
		put(verdict, "| directives | why |\n|---|---|\n"+strings.Join(rows, ""))
	}
	var lines strings.Builder
	lines.WriteString("| line | setting | becomes |\n|---|---|---|\n")
	for _, d := range Lines() {
		fmt.Fprintf(&lines, "| %s | %s | %s |\n", d.Line, d.Name, d.Becomes)
	}
	put("lines", lines.String())
	golden(t, name, text)
}

// TestPublic reads configurations that are not part of the repository: none has a directive
// that is not known.
func TestPublic(t *testing.T) {
	pattern := os.Getenv("COX_SLURM_CONFS")
	if pattern == "" {
		t.Skip("COX_SLURM_CONFS='/folder/*' says where configurations are")
	}
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	all, nodes, read := policy.Report{}, 0, 0
	for _, name := range names {
		r, err := Read([]File{{name, string(mustRead(t, name))}}, Options{})
		if err != nil {
			t.Logf("%v", err)
			continue
		}
		read++
		nodes += r.Cluster.Nodes()
		all.Findings = append(all.Findings, r.Report.Findings...)
		for _, f := range r.Report.Findings {
			if strings.Contains(f.How, "has no such setting") {
				t.Errorf("%s:%d: %s: %s", f.File, f.Line, f.What, f.How)
			}
		}
	}
	t.Logf("%d files, %d nodes, %s", read, nodes, all.Summary())
}
