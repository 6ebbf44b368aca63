// Package input recognises what a text is before anything reads it.
//
//	Recognise(name, data) ──► Input ──► Refusal(name)
//
// Coxswain reads two kinds of text: batch scripts and jobs in the native form. People also
// hand it manifests for Kubernetes, templates, files of other tools, programs and web pages.
// An Input names the kind, the line that shows it, and what to do with such a file instead.
// control/intake asks first, so that every command and the server give the same answer.
//
// Guarantees. Recognise is a function of the name and the bytes: it opens no file, keeps
// nothing and has no error. A text that begins with #! is a batch script whatever its name
// says, unless its interpreter is cox. Only the first 128 KiB are looked at, but for characters
// that no text has.
// A text that nothing else recognises is a batch script, and spec/sbatch says what is wrong
// with it.
//
// It does not check values, and it converts nothing. Lines of other batch systems (#PBS,
// #BSUB) are found, so that they can be named, and are never read.
package input
