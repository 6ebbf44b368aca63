package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
)

const slurmConf = `ClusterName=lab
PriorityType=priority/multifactor
PriorityWeightAge=1000
include parts.conf
NodeName=n[1-2] CPUs=8 RealMemory=32000
`

// nowhere is a server that does not answer: imports ask none.
const nowhere = "unix:///nowhere/s"

// TestImportSlurm reads a folder with a file that another includes. The rules go to a file that
// cox policy check takes, the report to another.
func TestImportSlurm(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"slurm.conf": slurmConf, "parts.conf": "PartitionName=main Nodes=n[1-2] Default=YES MaxTime=60\n", "notes.txt": "not Slurm's\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rules, report, cluster := filepath.Join(dir, "queues.yaml"), filepath.Join(dir, "report"), filepath.Join(dir, "cluster.yaml")
	coxAt(t, nowhere, "", "import", "slurm", dir, "-o", rules, "--report", report, "--cluster", cluster).Check(t, 0, "~"+rules+": ", "~cox simulate TRACE --cluster "+cluster+" --policy "+rules)
	text, err := os.ReadFile(rules)
	if err != nil || !strings.HasPrefix(string(text), "# made by cox import slurm of "+dir) || !strings.Contains(string(text), "name: main") {
		t.Errorf("%v\n%s", err, text)
	}
	coxAt(t, nowhere, "", "policy", "check", rules).Check(t, 0, "~can be applied", "")
	if said, err := os.ReadFile(report); err != nil || !strings.Contains(string(said), "PriorityWeightAge") || !strings.Contains(string(said), "parts.conf") {
		t.Errorf("%v\n%s", err, said)
	}
	if machines, err := os.ReadFile(cluster); err != nil || !strings.Contains(string(machines), "n") {
		t.Errorf("%v\n%s", err, machines)
	}

	coxAt(t, nowhere, "", "import", "slurm", filepath.Join(dir, "slurm.conf"), "--brief").Check(t, 0, "~name: main", "~")
	coxAt(t, nowhere, "", "import", "slurm").Check(t, 2, "", "~cox: name the files to import\n  cox import slurm /etc/slurm/slurm.conf dump.cfg")
	coxAt(t, nowhere, "", "import", "slurm", t.TempDir()).Check(t, 2, "", "~this directory has no file that is Slurm's by its name\n  name the files: cox import slurm slurm.conf dump.cfg")
	coxAt(t, nowhere, "", "import", "slurm", "/nowhere.conf").Check(t, 2, "", "~/nowhere.conf: no such file")
	bare := clitest.WriteFile(t, "slurm.conf", "ClusterName=lab\n")
	coxAt(t, nowhere, "", "import", "slurm", bare, "--cluster", cluster).Check(t, 2, "~", "~: no file has NodeName lines\n  add slurm.conf to the command")
	coxAt(t, nowhere, "", "import").Check(t, 2, "", "~cox import needs a command: kueue or slurm\n  for example: cox import slurm")
}

const clusterQueue = `apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: h100}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: nlp}
spec:
  resourceGroups:
  - coveredResources: ["nvidia.com/gpu"]
    flavors:
    - name: h100
      resources: [{name: "nvidia.com/gpu", nominalQuota: 8}]
`

// TestImportKueue reads Kueue's objects; with --strict nothing is written where one is refused.
//
// Seen to fail with: --strict that refuses nothing.
func TestImportKueue(t *testing.T) {
	coxAt(t, nowhere, clusterQueue, "import", "kueue", "-").Check(t, 0, "~name: nlp", "~nominalQuota")
	out := filepath.Join(t.TempDir(), "queues.yaml")
	refused := strings.Replace(clusterQueue, "spec:\n", "spec:\n  admissionChecks: [prov]\n", 1)
	ran := coxAt(t, nowhere, refused, "import", "kueue", "-", "--strict", "-o", out)
	ran.Check(t, 2, "", "~refused: the lines that say refused above\n  leave --strict out to write the rules without them\nnothing was written                                          exit 2 (invalid request)\n")
	if _, err := os.Stat(out); err == nil {
		t.Error("the rules were written")
	}
	coxAt(t, nowhere, "kind: [\n", "import", "kueue", "-").Check(t, 2, "", "~nothing was written")
	coxAt(t, nowhere, "", "import", "kueue").Check(t, 2, "", "~cox: name the files to import\n  cox import kueue kueue.yaml")
}
