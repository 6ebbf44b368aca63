// Package convert takes jobs from manifests to the other forms and back: ToJob makes of the pods of a manifest a
// job that the native form and sbatch can say, Render writes a manifest of a job. Both list what is lost.
//
// The package is pure: it makes values and text of values.
package convert
