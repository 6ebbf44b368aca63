package command

import "testing"

// TestInstance: lines are those that scontrol 22.05 and 24.11 print.
func TestInstance(t *testing.T) {
	for _, tt := range []struct{ line, name, id string }{
		{"NodeName=worker-0 Arch=x86_64 CoresPerSocket=8 NodeAddr=worker-0.worker.soperator.svc State=IDLE Comment=a InstanceId=b Extra=c InstanceId=d   InstanceId=computeinstance-e00abc InstanceType=gpu-h200\n", "worker-0", "computeinstance-e00abc"},
		{"NodeName=worker-1 State=IDLE InstanceId=kube-7 \n", "worker-1", "kube-7"},
		{"NodeName=n1 Arch=x86_64 State=IDLE Comment=InstanceId Extra=x\n", "n1", ""},
		{"NodeName=n1 InstanceId=(null) InstanceType=x\n", "n1", ""},
		{"\n", "\n", ""},
	} {
		if name, id := parseInstance(tt.line); name != tt.name || id != tt.id {
			t.Errorf("%q: %q, %q, want %q, %q", tt.line, name, id, tt.name, tt.id)
		}
	}
}
