package job

import "fmt"

// Rerun says on which nodes a job runs again, after a failure or a requeue.
type Rerun string

// The values of Rerun.
const (
	RerunAnywhere      Rerun = ""               // but for a while not on a node whose failure ended it
	RerunSameNodes     Rerun = "same-nodes"     // on the nodes that it had: its data is there
	RerunExcludeFailed Rerun = "exclude-failed" // not on nodes on which an attempt of it failed, by whosever fault
)

// RerunWords lists the words that a user can write.
func RerunWords() []string { return []string{string(RerunSameNodes), string(RerunExcludeFailed)} }

// Check reports a value that there is not.
func (r Rerun) Check() error {
	switch r {
	case RerunAnywhere, RerunSameNodes, RerunExcludeFailed:
		return nil
	}
	return fmt.Errorf("rerun: %.70q is neither %s nor %s", string(r), RerunSameNodes, RerunExcludeFailed)
}
