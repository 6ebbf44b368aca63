// Package printer turns what the API answers into text for people: tables, cards of
// one job or node, reasons of a wait, events, errors.
//
// Every function is pure: it takes values of package api and a Page (what time it
// is, how wide the terminal is, whether there are colours) and returns text. The
// same code therefore serves the commands, cox top and the tests. Without a
// terminal (Page.Width 0) nothing is cut and nothing is coloured, so that the
// output of a pipe is complete.
//
// Text that users chose (names, reasons, messages) is cleaned of control
// characters before it is shown: a job's name cannot move the reader's cursor.
//
// The package reads no clock, no environment and no file, and knows nothing of
// HTTP. Machine-readable forms (JSON, YAML, names) are not made here.
package printer
