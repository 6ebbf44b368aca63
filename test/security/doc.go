// Package security attacks a server as its users could, and wants every attack to
// fail.
//
// The model: SECURITY.md says who attacks, what he may do and what is defended, and
// names a test for each claim; a test here keeps those names true. What is tried:
// every route and method as every identity on objects of everybody (matrix_test.go,
// testdata/matrix.txt); every field by which the pods of a manifest reach beyond their job, in
// pools with and without its word (manifestrights_test.go, testdata/manifest-rights.txt); secrets planted and looked for wherever they must not be
// (canary_test.go); names and links that lead elsewhere (path_test.go); one user's
// work beside another's on a machine, as root (isolation_test.go); floods
// (flood_test.go).
//
// It does not search for defects at random: that is what the fuzz targets are for. What
// this machine cannot enforce is skipped with a sentence.
package security
