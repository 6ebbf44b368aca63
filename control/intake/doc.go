// Package intake is the only way of a text into a job that a control plane runs:
//
//	Detect ──► Read ──► Admit (with Choose) ──► Submit
//
// Detect says which form a text has, after spec/input has said what it is. Read makes a Request
// of it, and refuses what is neither a batch script nor a job in the native form. Admit applies
// what the site says about jobs and chooses the pool, and Submit hands the job to the control
// plane. The server, cox run, cox submit --dry-run, cox advise and cox convert all come through
// here, each as far as it needs: those that keep no job stop after Read.
//
// Guarantees. A text has one form, whoever asks. A text is parsed once: the facts that the
// advice on pools needs come from that parse. Read and Detect touch no file but those that
// Options.ReadFile opens. Admit changes a job only in what was left open, and says so.
//
// It does not speak HTTP, does not know which identity a connection has, and keeps nothing.
package intake
