"""Pure. One file per question: what is asked, the answer as it is published, and how one follows from the other."""
