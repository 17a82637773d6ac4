"""What people read: functions of verdicts and runs, one file per format."""
