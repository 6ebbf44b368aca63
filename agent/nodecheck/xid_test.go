package nodecheck

import (
	"testing"
	"time"
)

// A name that any user gives a program or a file is no fault of a device.
//
// Seen to fail without the domain of eight digits, with the words anywhere in a record, without the look at
// the facility, and with anything for a bus.
func TestParseXid(t *testing.T) {
	booted := time.Unix(1000, 0)
	const line = "4,1234,5000000,-;NVRM: Xid (PCI:0000:17:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n SUBSYSTEM=pci\n"
	x, ok := parseXid(line, booted)
	if want := (Xid{At: time.Unix(1005, 0), Bus: "0000:17:00", Code: 79, Text: "79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."}); !ok || x != want {
		t.Errorf("%+v, %v", x, ok)
	}
	for _, other := range []string{
		"", ";", "4,1,2,-;usb 1-1: new device", "4,1;NVRM: Xid (PCI:0000:17:00): 79, x", "4,1,2,-;NVRM: Xid (PCI:0000:17:00): many, x", "4,1,2,-;NVRM: Xid (PCI:0000",
		"6,339,5140900,-;x[4711]: segfault at 0 ip 0000000000401000 sp 00007ffd0 error 4 in NVRM: Xid (PCI:0000:17:00): 79, pid=1[401000+1000]",
		"6,339,5140900,-;NVRM: Xid (PCI:[4711]: segfault at 0 ip 1 sp 2 error 4 in 0000:17:00): 79, pid=1[401000+1000]",
		"6,339,5140900,-;NVRM: Xid (PCI:0000:17:00 in x): 79, pid=1", "6,339,5140900,-;NVRM: Xid (PCI:0000:17:00.10): 79, pid=1", "6,339,5140900,-;NVRM: Xid (PCI:17:00): 79, pid=1",
		"14,339,5140900,-;NVRM: Xid (PCI:0000:17:00): 79, pid=1", "x,339,5140900,-;NVRM: Xid (PCI:0000:17:00): 79, pid=1",
	} {
		if x, ok := parseXid(other, booted); ok {
			t.Errorf("%q is %+v", other, x)
		}
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"0000:17:00", "00000000:17:00.0", true}, {"0000:17:00", "0000:17:00.0", true}, {"0000:17:00", "0000:18:00.0", false}, {"0001:17:00", "0000:17:00.0", false},
	} {
		if sameBus(c.a, c.b) != c.same {
			t.Errorf("%s and %s", c.a, c.b)
		}
	}
}
