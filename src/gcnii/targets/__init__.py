"""What is predicted: its loss, scores, probabilities, calibration and prediction sets."""
