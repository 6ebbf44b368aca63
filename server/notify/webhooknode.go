package notify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
)

// NodeEvents is the word by which a webhook of the site asks for changes of nodes. It has to be named: a
// webhook without events is told of jobs alone.
const NodeEvents = "node"

// NodeChange is a change of nodes: a fence or a drain that came or went.
type NodeChange struct {
	Kind   string // as in the API: "node-fenced"
	Number uint64 // of the event, in the journal
	Nodes  []string
	By     string // who did it; empty: the control plane
	Text   string // what was seen, or the reason
}

// PayloadNodes are the nodes of a message.
type PayloadNodes struct {
	Names []string `json:"names"`
	By    string   `json:"by,omitempty"`
	Why   string   `json:"why,omitempty"`
}

// Nodes queues a message about nodes, for a webhook of the site that asks for them.
func (n *Notifier) Nodes(c NodeChange) {
	if n == nil {
		return
	}
	if w, ok := n.outlet.(*webhookOutlet); !ok || !w.nodes {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.enqueueMessage(occasion{job: job.Job{Spec: &job.Spec{}}, nodes: &c, at: time.Now()})
	}
}

// ofJobs are the events of jobs among those of a webhook; asked is false if it has none.
func ofJobs(on []string) (events []string, asked bool) {
	events = slices.DeleteFunc(slices.Clone(on), func(e string) bool { return e == NodeEvents })
	return events, len(events) > 0 || len(on) == 0
}

// composeNodes writes the message about nodes.
func composeNodes(o *occasion, server string) *Payload {
	c := o.nodes
	names := hostlist.Compress(c.Nodes)
	verb := map[string]string{
		"node-fenced": "is fenced", "node-unfenced": "is used again", "node-drained": "is drained", "node-resumed": "is resumed",
	}[c.Kind]
	if verb == "" {
		verb = strings.TrimPrefix(c.Kind, "node-")
	}
	p := &Payload{
		Event: c.Kind, Time: o.at.UTC().Truncate(time.Millisecond), Server: server, Delivery: fmt.Sprintf("%s-event-%d", server, c.Number),
		Node: &PayloadNodes{Names: c.Nodes, By: c.By, Why: oneLine(c.Text, maxSubject)},
	}
	p.Text = "node " + chatText(names) + " " + verb
	if p.Node.Why != "" {
		p.Text += ": " + chatText(p.Node.Why)
	}
	return p
}
