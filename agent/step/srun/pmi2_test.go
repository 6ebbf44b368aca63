package srun

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/step"
)

func TestPMI2(t *testing.T) {
	i := &step.Info{Step: 3, Tasks: 3, Components: []step.Component{{Tasks: 3}}, Parts: []step.StepPart{{Node: 0, Ranks: []int{0, 1}}, {Node: 1, Ranks: []int{2}}}}
	k := newTalk(i)
	// call has a rank say a command of PMI-2; the answer comes without its length.
	call := func(rank int, body string) string {
		before := len(k.answers[rank])
		k.server.handlePMI2(rank, body)
		var out []string
		for _, a := range k.answers[rank][before:] {
			if len(a) < 6 || strings.TrimSpace(a[:6]) != strings.TrimSpace(lengthOf(a[6:])) {
				t.Errorf("%s: the length of %q is wrong", body, a)
			}
			out = append(out, a[6:])
		}
		return strings.Join(out, "\n")
	}
	if got := k.say(1, "cmd=init pmi_version=2 pmi_subversion=0"); got != "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0" {
		t.Errorf("init: %q", got)
	}
	for _, c := range []struct {
		rank      int
		say, want string
	}{
		{1, "cmd=fullinit;pmirank=1;threaded=FALSE;", "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=1;size=3;appnum=0;debugged=FALSE;pmiverbose=FALSE;"},
		{1, "cmd=job-getid;thrid=0x7f;", "cmd=job-getid-response;thrid=0x7f;rc=0;jobid=kvs_3;"},
		{1, "cmd=kvs-put;key=a;value=x=;;;;y;", "cmd=kvs-put-response;rc=0;"},
		{0, "cmd=kvs-get;jobid=kvs_3;srcid=1;key=a;", "cmd=kvs-get-response;rc=0;found=TRUE;value=x=;;;;y;"},
		{0, "cmd=kvs-get;jobid=kvs_3;srcid=1;key=b;", "cmd=kvs-get-response;rc=0;found=FALSE;"},
		{0, "cmd=info-getjobattr;key=PMI_process_mapping;", "cmd=info-getjobattr-response;rc=0;found=TRUE;value=(vector,(0,1,2),(1,1,1));"},
		{0, "cmd=info-getjobattr;key=universeSize;", "cmd=info-getjobattr-response;rc=0;found=TRUE;value=3;"},
		{0, "cmd=info-getnodeattr;key=n;wait=FALSE;", "cmd=info-getnodeattr-response;rc=0;found=FALSE;"},
		{0, "cmd=info-getnodeattr;key=n;wait=TRUE;", ""},
		{2, "cmd=info-putnodeattr;key=n;value=far;", "cmd=info-putnodeattr-response;rc=0;"}, // another node's
		{1, "cmd=info-putnodeattr;key=n;value=near;", "cmd=info-putnodeattr-response;rc=0;"},
		{2, "cmd=info-getnodeattr;key=n;wait=TRUE;", "cmd=info-getnodeattr-response;rc=0;found=TRUE;value=far;"},
		{0, "cmd=kvs-fence;", ""},
		{1, "cmd=kvs-fence;", ""},
		{2, "cmd=kvs-fence;", "cmd=kvs-fence-response;rc=0;"},
		{0, "cmd=ring;ring-count=2;ring-left=a;ring-right=A;", ""},
		{1, "cmd=ring;ring-count=3;ring-left=b;ring-right=B;", ""},
		{2, "cmd=ring;ring-count=1;ring-left=c;ring-right=C;", "cmd=ring-response;rc=0;ring-count=5;ring-left=B;ring-right=a;"},
		{0, "cmd=name-lookup;name=s;infokeycount=0;", "cmd=name-lookup-response;rc=-1;errmsg=nobody has published s;"},
		{1, "cmd=name-publish;name=s;port=p;infokeycount=0;", "cmd=name-publish-response;rc=0;"},
		{0, "cmd=name-lookup;name=s;infokeycount=0;", "cmd=name-lookup-response;rc=0;port=p;value=p;"},
		{1, "cmd=name-unpublish;name=s;infokeycount=0;", "cmd=name-unpublish-response;rc=0;"},
		{0, "cmd=spawn;ncmds=1;subcmd=/bin/true;maxprocs=1;argc=0;", "cmd=spawn-response;rc=-1;errmsg=" + strings.ReplaceAll(spawnRefused, ";", ";;") + ";"},
		{0, "cmd=job-connect;jobid=x;", "cmd=job-connect-response;rc=-1;errmsg=srun does not serve job-connect;"},
		{0, "nonsense", "cmd=-response;rc=-1;errmsg=srun does not serve ;"},
		{0, "cmd=finalize;", "cmd=finalize-response;rc=0;"},
	} {
		if got := call(c.rank, c.say); got != c.want {
			t.Errorf("%d: %s: %q, want %q", c.rank, c.say, got, c.want)
		}
	}
	if a := k.answers[0]; !strings.Contains(strings.Join(a, "\n"), "cmd=info-getnodeattr-response;rc=0;found=TRUE;value=near;") {
		t.Errorf("rank 0 never heard what it waited for: %q", a)
	}
	if !strings.Contains(k.said, "task 0: MPI_Comm_spawn is not served") {
		t.Errorf("said %q", k.said)
	}
	if call(2, "cmd=abort;isworld=TRUE;msg=no more;exitcode=4;"); k.aborted != 4 {
		t.Errorf("aborted with %d", k.aborted)
	}
}

// lengthOf is the length of a command in decimals.
func lengthOf(body string) string {
	n, digits := len(body), ""
	for ; n > 0; n /= 10 {
		digits = string(rune('0'+n%10)) + digits
	}
	return digits
}

const pmi2Program = `#include <slurm/pmi2.h>
#include <stdio.h>
#include <string.h>
int main(void) {
	int spawned, size, rank, app, len, found, i, sum = 0;
	char job[256], key[64], value[64], long_value[1024];
	if (PMI2_Init(&spawned, &size, &rank, &app) || PMI2_Job_GetId(job, sizeof job)) return 3;
	sprintf(key, "key%d", rank);
	sprintf(value, "%d;x=\n%d", rank, rank * rank);
	memset(long_value, 'v', sizeof long_value);
	long_value[1000] = 0;
	if (PMI2_KVS_Put(key, value) || PMI2_KVS_Put(rank ? "unused" : "long", long_value) || PMI2_KVS_Fence()) return 4;
	for (i = 0; i < size; i++) {
		int r = -1, square = -1;
		sprintf(key, "key%d", i);
		if (PMI2_KVS_Get(job, PMI2_ID_NULL, key, value, sizeof value, &len)) return 5;
		if (sscanf(value, "%d;x=\n%d", &r, &square) != 2 || r != i) return 6;
		sum += square;
	}
	if (PMI2_KVS_Get(job, 0, "long", long_value, sizeof long_value, &len) || strlen(long_value) != 1000) return 7;
	if (PMI2_Info_GetJobAttr("PMI_process_mapping", value, sizeof value, &found) || !found) return 8;
	printf("rank %d of %d sum %d map %s\n", rank, size, sum, value);
	return PMI2_Finalize();
}
`

// TestPMI2Program runs a program with Slurm's own library of PMI-2.
func TestPMI2Program(t *testing.T) {
	dir := t.TempDir()
	source, program := filepath.Join(dir, "hello.c"), filepath.Join(dir, "hello")
	if err := os.WriteFile(source, []byte(pmi2Program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", source, "-o", program, "-lpmi2").CombinedOutput(); err != nil {
		t.Skipf("libpmi2 (libpmi2-0-dev) is not installed: %s", out)
	}
	c := launch(t, perNode2())
	for _, options := range []string{"", "--mpi=pmi2"} {
		got := c.run("srun " + options + " -l " + program)
		want := "0: rank 0 of 8 sum 140 map (vector,(0,4,2))"
		if all := strings.Split(lines(got.out), "\n"); got.code != 0 || len(all) != 8 || all[0] != want {
			t.Errorf("%s: exit %d, printed\n%s\nsaid\n%s", options, got.code, got.out, got.err)
		}
	}
}
