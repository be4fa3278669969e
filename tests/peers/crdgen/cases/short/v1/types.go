package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ShortCase has descriptions that are cut. This is the second sentence, which is too long.
type ShortCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// One two three four five six seven eight nine ten eleven twelve thirteen
	Words string `json:"words"`
	// Onetwothreefourfivesixseveneightnineteneleventwelvethirteenfourteen
	Word string `json:"word"`
	// Fits.
	Fits string `json:"fits"`
	// Ends here! and then it goes on and on and on
	Bang string `json:"bang"`
}
